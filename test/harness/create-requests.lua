-- The requests of load.ts, for wrk. All requests of a run have the same length and are one
-- concatenation of few parts, so that the load costs little CPU time.

local random_ids = os.getenv("IDS") == "random"
-- 16 digits, for which a double is exact.
local counter = tonumber(os.getenv("FIRST_ID"))
local TAIL = '","tag":"houseplant"}'
local headers

function init()
  math.randomseed(counter)
  local id_digits = random_ids and 19 or 16
  local length = #'{"id":' + id_digits + #',"name":"Monstera deliciosa ' + 16 + #TAIL
  headers = "POST /plants HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " .. os.getenv("TOKEN") ..
    "\r\nContent-Type: application/json\r\nContent-Length: " .. length .. '\r\n\r\n{"id":'
end

function request()
  counter = counter + 1
  local digits = string.format("%d", counter)
  local id = digits
  if random_ids then
    -- From 10^18 to below 922 * 10^16, in two halves: a double is not exact for 19 digits.
    id = string.format("%d%010d", math.random(100000000, 921999999), math.floor(math.random() * 1e10))
  end
  return headers .. id .. ',"name":"Monstera deliciosa ' .. digits .. TAIL
end

-- Prints the line that load.ts reads. wrk measures latencies in µs.
function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    'result {"requests":%d,"durationUs":%d,"p50Us":%d,"p99Us":%d,"maxUs":%d,"failures":%d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), latency.max,
    errors.connect + errors.read + errors.write + errors.timeout + errors.status))
end
