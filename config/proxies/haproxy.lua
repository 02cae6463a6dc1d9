-- One question to Tollgate for each request (haproxy.cfg). Two lines are your own: the address of Tollgate and the secret, which is the
-- one of `decision:` in tollgate.yaml.
local URL = "http://127.0.0.1:8404/"
local SECRET = "change-me-change-me"
-- Longer than decision.answer_within, or a payer is charged and not served.
local TIMEOUT_MS = 40000

local FACTS = {
  "tollgate-charge-id", "tollgate-route-id", "tollgate-payer", "tollgate-amount", "tollgate-currency",
  "tollgate-network", "tollgate-customer-id",
}
local HOP = {}
for name in ("connection keep-alive te trailer upgrade transfer-encoding content-length expect proxy-connection host"):gmatch("%S+") do
  HOP[name] = true
end

-- All headers with all of their values: Tollgate refuses what a client has forged or doubled.
local function copy(from)
  local to = {}
  for name, values in pairs(from) do
    if not HOP[name] then
      to[name] = {}
      for i = 0, #values do to[name][i + 1] = values[i] end
    end
  end
  return to
end

-- Adds a value beside those of the client: a header that it has sent stands twice then, and is refused.
local function add(headers, name, value)
  headers[name] = headers[name] or {}
  table.insert(headers[name], value)
end

core.register_action("tollgate", { "http-req" }, function(txn)
  local ask = copy(txn.http:req_get_headers())
  ask["x-forwarded-method"] = { txn.sf:method() }
  ask["x-forwarded-uri"] = { txn:get_var("txn.tg_target") }
  ask["x-forwarded-host"] = { txn.sf:req_hdr("host") }
  ask["x-forwarded-proto"] = { txn.sf:ssl_fc() == 1 and "https" or "http" }
  ask["x-forwarded-for"] = { txn.sf:src() }
  add(ask, "tollgate-request-id", txn:get_var("txn.tg_id"))
  add(ask, "tollgate-secret", SECRET)
  local got = core.httpclient():get({ url = URL, headers = ask, timeout = TIMEOUT_MS })
  local headers = got.headers or {}
  local function one(name) return headers[name] and headers[name][0] end
  if got.status == 200 and one("tollgate-decision") == "allow" and one("tollgate-target") then
    for _, name in ipairs(FACTS) do
      if one(name) then txn.http:req_set_header(name, one(name)) end
    end
    -- What was decided is what is forwarded.
    txn.http:req_set_uri(one("tollgate-target"))
    if one("tollgate-charge-id") then txn:set_var("txn.tg_charge", one("tollgate-charge-id")) end
    if one("payment-response") then txn:set_var("txn.tg_receipt", one("payment-response")) end
    return
  end
  local status = got.status or 0
  if status == 204 or (status >= 400 and status <= 599) then
    txn:done(txn:reply({ status = status, reason = got.reason, headers = copy(headers), body = got.body }))
  end
  txn:done(txn:reply({ status = 503, headers = { ["cache-control"] = { "no-store" } }, body = "" }))
end, 0)
