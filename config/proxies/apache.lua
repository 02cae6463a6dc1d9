-- One question to Tollgate for each request (apache.conf). Two lines are your own: the address of Tollgate and the secret, which is the
-- one of `decision:` in tollgate.yaml.
local URL = "http://127.0.0.1:8404/"
local SECRET = "change-me-change-me"

local http = require "socket.http"
local ltn12 = require "ltn12"
-- Longer than decision.answer_within, or a payer is charged and not served.
http.TIMEOUT = 40

local ASKED = {
  "PAYMENT-SIGNATURE", "X-PAYMENT", "X-Customer-Id", "Origin", "Access-Control-Request-Method", "Accept", "User-Agent",
  "traceparent", "X-Request-Id", "X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X-Original-URL",
  "X-Original-URI", "X-Rewrite-URL", "X-Rewrite-URI", "X-Forwarded-Prefix", "X-Host", "Forwarded",
}
local FACTS = {
  "Tollgate-Charge-Id", "Tollgate-Route-Id", "Tollgate-Payer", "Tollgate-Amount", "Tollgate-Currency", "Tollgate-Network",
  "Tollgate-Customer-Id",
}
local SKIPPED = {
  connection = true, ["keep-alive"] = true, te = true, trailer = true, upgrade = true, ["transfer-encoding"] = true,
  ["content-length"] = true, ["content-type"] = true, date = true,
}

local function refuse(r, status, body)
  r.status = status
  r.content_type = "application/problem+json"
  r:write(body)
  return apache2.DONE
end

function decide(r)
  if r.subprocess_env["tollgate_forged"] then
    return refuse(r, 400, '{"type":"/problems/header_refused","title":"Header refused","status":400,"code":"header_refused"}')
  end
  local ask = {}
  for _, name in ipairs(ASKED) do
    if r.headers_in[name] then ask[name] = r.headers_in[name] end
  end
  ask["X-Forwarded-Method"] = r.method
  ask["X-Forwarded-Uri"] = r.unparsed_uri
  ask["X-Forwarded-Host"] = r.headers_in["Host"]
  ask["X-Forwarded-Proto"] = r.is_https and "https" or "http"
  ask["X-Forwarded-For"] = r.useragent_ip
  ask["Tollgate-Request-Id"] = r.subprocess_env["UNIQUE_ID"]
  ask["Tollgate-Secret"] = SECRET
  ask["Connection"] = "close"
  local parts = {}
  local ok, status, headers = http.request {
    url = URL, method = "GET", headers = ask, sink = ltn12.sink.table(parts), redirect = false,
  }
  if not ok then return refuse(r, 503, "") end
  if status == 200 and headers["tollgate-decision"] == "allow" then
    for _, name in ipairs(FACTS) do
      if headers[name:lower()] then r.headers_in[name] = headers[name:lower()] end
    end
    if headers["payment-response"] then r.err_headers_out["PAYMENT-RESPONSE"] = headers["payment-response"] end
    return apache2.OK
  end
  if status ~= 204 and status < 400 then return refuse(r, 503, "") end
  for name, value in pairs(headers) do
    if not SKIPPED[name] then r.err_headers_out[name] = value end
  end
  r.status = status
  if headers["content-type"] then r.content_type = headers["content-type"] end
  r:write(table.concat(parts))
  return apache2.DONE
end
