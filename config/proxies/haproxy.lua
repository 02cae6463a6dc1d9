-- One question to Tollgate for each request (haproxy.cfg). Two lines are your own: the address of Tollgate and the secret, which is the
-- one of `decision:` in tollgate.yaml.
local URL = "http://127.0.0.1:8404/"
local SECRET = "change-me-change-me"
-- Longer than decision.answer_within, or a payer is charged and not served.
local TIMEOUT_MS = 40000

-- What an allow says to the API.
local FACTS = {
  "tollgate-charge-id", "tollgate-use-id", "tollgate-route-id", "tollgate-payer", "tollgate-amount", "tollgate-currency",
  "tollgate-network", "tollgate-customer-id", "tollgate-access",
}
-- What it says to the client, and the variable by which haproxy.cfg hands it on.
local TOLD = {
  ["payment-response"] = "txn.tg_receipt", ["x-payment-response"] = "txn.tg_receipt_v1",
  ["tollgate-free-left"] = "txn.tg_free_left", ["tollgate-pass"] = "txn.tg_pass",
  ["tollgate-pass-left"] = "txn.tg_pass_left",
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

-- The question of a request, and of the report about it.
local function question(txn)
  return {
    ["x-forwarded-method"] = { txn:get_var("txn.tg_method") },
    ["x-forwarded-uri"] = { txn:get_var("txn.tg_target") },
    ["x-forwarded-host"] = { txn:get_var("txn.tg_host") or "" },
    ["x-forwarded-proto"] = { txn.sf:ssl_fc() == 1 and "https" or "http" },
    ["x-forwarded-for"] = { txn.sf:src() },
  }
end

core.register_action("tollgate", { "http-req" }, function(txn)
  local sent = txn.http:req_get_headers()
  local ask = copy(sent)
  for name, values in pairs(question(txn)) do ask[name] = values end
  add(ask, "tollgate-request-id", txn:get_var("txn.tg_id"))
  add(ask, "tollgate-secret", SECRET)
  local got = core.httpclient():get({ url = URL, headers = ask, timeout = TIMEOUT_MS })
  local headers = got.headers or {}
  local function one(name) return headers[name] and headers[name][0] end
  if got.status == 200 and one("tollgate-decision") == "allow" and one("tollgate-target") then
    for name in pairs(sent) do
      if name:lower():gsub("[^a-z0-9]", "-"):sub(1, 9) == "tollgate-" then txn.http:req_del_header(name) end
    end
    for _, name in ipairs(FACTS) do
      if one(name) then txn.http:req_set_header(name, one(name)) end
    end
    for name, variable in pairs(TOLD) do
      if one(name) then txn:set_var(variable, one(name)) end
    end
    -- What was decided is what is forwarded.
    txn.http:req_set_uri(one("tollgate-target"))
    local charge, access = one("tollgate-charge-id"), one("tollgate-access") or "observed"
    if charge then txn:set_var("txn.tg_charge", charge) end
    if charge or access ~= "observed" then txn:set_var("txn.tg_own", "yes") end
    return
  end
  local status = got.status or 0
  if status == 204 or (status >= 400 and status <= 599) then
    txn:done(txn:reply({ status = status, reason = got.reason, headers = copy(headers), body = got.body }))
  end
  txn:done(txn:reply({ status = 503, headers = { ["cache-control"] = { "no-store" } }, body = "" }))
end, 0)

-- The API gave no answer to a request that was paid for: what Tollgate says to the report becomes the answer.
core.register_action("tollgate_failed", { "http-res" }, function(txn)
  local report = question(txn)
  report["tollgate-charge-id"] = { txn:get_var("txn.tg_charge") }
  report["tollgate-request-id"] = { txn:get_var("txn.tg_id") }
  report["tollgate-secret"] = { SECRET }
  local got = core.httpclient():get({ url = URL .. "failed", headers = report, timeout = TIMEOUT_MS })
  if (got.status or 0) < 400 or not got.headers["content-type"] then return end
  txn:done(txn:reply({ status = got.status, reason = got.reason, headers = copy(got.headers), body = got.body }))
end, 0)
