-- One question to Tollgate for each request, and a report if the API then gave no answer (apache.conf). Two lines are your own: the address of Tollgate and the secret, which is the
-- one of `decision:` in tollgate.yaml.
local URL = "http://127.0.0.1:8404/"
local SECRET = "change-me-change-me"

local http = require "socket.http"
local ltn12 = require "ltn12"
-- Longer than decision.answer_within, or a payer is charged and not served.
http.TIMEOUT = 40

-- The headers of a request that Tollgate sees. Add those that your plans, prices and customers name.
local ASKED = {
  "PAYMENT-SIGNATURE", "X-PAYMENT", "Tollgate-Pass", "SIGN-IN-WITH-X", "Idempotency-Key", "X-Customer-Id", "X-Api-Key",
  "Authorization", "Cookie", "Origin", "Access-Control-Request-Method", "Access-Control-Request-Headers", "Accept",
  "User-Agent", "traceparent", "X-Request-Id", "X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override",
  "X-Original-URL", "X-Original-URI", "X-Rewrite-URL", "X-Rewrite-URI", "X-Forwarded-Prefix", "X-Host", "Forwarded",
}
-- What an allow says to the API, and to the client.
local FACTS = {
  "Tollgate-Charge-Id", "Tollgate-Use-Id", "Tollgate-Route-Id", "Tollgate-Payer", "Tollgate-Amount", "Tollgate-Currency",
  "Tollgate-Network", "Tollgate-Customer-Id", "Tollgate-Access",
}
local TOLD = {
  "PAYMENT-RESPONSE", "X-PAYMENT-RESPONSE", "Tollgate-Free-Left", "Tollgate-Pass", "Tollgate-Pass-Left",
}
local SKIPPED = {
  connection = true, ["keep-alive"] = true, te = true, trailer = true, upgrade = true, ["transfer-encoding"] = true,
  ["content-length"] = true, ["content-type"] = true, date = true,
}

-- The path of apache.conf that reports. Nobody else may come here.
local FAILED = "/.tollgate-failed"

local function refuse(r, status, body)
  r.status = status
  r.content_type = "application/problem+json"
  r:write(body)
  return apache2.DONE
end

-- Asks about `asked`: the method, the target and the id of a request.
local function ask(r, path, asked, headers)
  headers["X-Forwarded-Method"] = asked.method
  headers["X-Forwarded-Uri"] = asked.target
  headers["X-Forwarded-Host"] = r.headers_in["Host"]
  headers["X-Forwarded-Proto"] = r.is_https and "https" or "http"
  headers["X-Forwarded-For"] = r.useragent_ip
  headers["Tollgate-Request-Id"] = asked.id
  headers["Tollgate-Secret"] = SECRET
  headers["Connection"] = "close"
  local parts = {}
  local ok, status, got = http.request {
    url = URL .. path, method = "GET", headers = headers, sink = ltn12.sink.table(parts), redirect = false,
  }
  if ok then return status, got, table.concat(parts) end
end

-- Makes an answer of Tollgate the client's.
local function answer(r, status, headers, body)
  for name, value in pairs(headers) do
    if not SKIPPED[name] then r.err_headers_out[name] = value end
  end
  r.status = status
  if headers["content-type"] then r.content_type = headers["content-type"] end
  r:write(body)
end

function decide(r)
  local env = r.subprocess_env
  if r.uri == FAILED and env["REDIRECT_tollgate_asked"] then return apache2.OK end
  if env["tollgate_forged"] then
    return refuse(r, 400, '{"type":"/problems/header_refused","title":"Header refused","status":400,"code":"header_refused"}')
  end
  local sent = {}
  for _, name in ipairs(ASKED) do
    if r.headers_in[name] then sent[name] = r.headers_in[name] end
  end
  local asked = { method = r.method, target = r.unparsed_uri, id = env["UNIQUE_ID"] }
  local status, headers, body = ask(r, "", asked, sent)
  if not status then return refuse(r, 503, "") end
  if status == 200 and headers["tollgate-decision"] == "allow" then
    for _, name in ipairs(FACTS) do r.headers_in[name] = headers[name:lower()] end
    for _, name in ipairs(TOLD) do
      if headers[name:lower()] then r.err_headers_out[name] = headers[name:lower()] end
    end
    -- A client cannot send these; they come to `failed` as REDIRECT_....
    env["tollgate_asked"] = "yes"
    env["tollgate_method"] = asked.method
    env["tollgate_target"] = asked.target
    env["tollgate_id"] = asked.id
    if headers["tollgate-charge-id"] then
      env["tollgate_charge"] = headers["tollgate-charge-id"]
      -- Apache gives a 502 to the first request of a connection alone. A later one it drops without a word, and unreported. So a 402
      -- and what was paid for each end their connection, and the request that pays comes on one of its own.
      env["nokeepalive"] = "1"
    end
    return apache2.OK
  end
  if status ~= 204 and status < 400 then return refuse(r, 503, "") end
  if status == 402 then env["nokeepalive"] = "1" end
  answer(r, status, headers, body)
  return apache2.DONE
end

-- Runs for an error of Apache's own: the API gave no answer. What was paid for is reported, so that the payer may ask again.
function failed(r)
  local env = r.subprocess_env
  if not env["REDIRECT_tollgate_asked"] then return 404 end
  local charge = env["REDIRECT_tollgate_charge"]
  if charge then
    local asked = {
      method = env["REDIRECT_tollgate_method"], target = env["REDIRECT_tollgate_target"], id = env["REDIRECT_tollgate_id"],
    }
    local status, headers, body = ask(r, "failed", asked, { ["Tollgate-Charge-Id"] = charge })
    if status and status >= 400 then
      answer(r, status, headers, body)
      return apache2.OK
    end
  end
  r.content_type = "text/plain"
  r:write("The API behind this server gave no answer.\n")
  return apache2.OK
end
