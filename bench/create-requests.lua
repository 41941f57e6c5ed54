-- Requests for wrk, as load.ts describes them in the environment. All requests of a run have the same length and are one
-- concatenation of few parts: what the load costs is not there for the server to have.

local NAME_START = "Monstera deliciosa "
local TAIL = '","tag":"houseplant"}'

local random_ids = os.getenv("IDS") == "random"
-- 16 digits, which a double holds exactly.
local counter = tonumber(os.getenv("FIRST_ID"))
local name_bytes = tonumber(os.getenv("NAME_BYTES"))
local own_bytes = math.min(name_bytes, 16)
local heads = {}
local turn = 0
local middle

function init()
  math.randomseed(counter)
  local filler = math.max(name_bytes - 16, 0)
  middle = ',"name":"' .. string.sub(NAME_START .. string.rep("x", filler), 1, filler)
  local id_digits = random_ids and 19 or 16
  local length = #'{"id":' + id_digits + #middle + own_bytes + #TAIL
  for token in io.lines(os.getenv("TOKENS_FILE")) do
    heads[#heads + 1] = "POST /plants HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " .. token ..
      "\r\nContent-Type: application/json\r\nContent-Length: " .. length .. '\r\n\r\n{"id":'
  end
end

function request()
  counter = counter + 1
  turn = turn % #heads + 1
  local digits = string.format("%d", counter)
  local id = digits
  if random_ids then
    -- From 10^18 to below 922 * 10^16, in two halves: no double holds 19 digits.
    id = string.format("%d%010d", math.random(100000000, 921999999), math.floor(math.random() * 1e10))
  end
  return heads[turn] .. id .. middle .. string.sub(digits, -own_bytes) .. TAIL
end

-- One line that load.ts reads. Latencies are in µs already.
function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    'result {"requests":%d,"durationUs":%d,"p50Us":%d,"p99Us":%d,"p999Us":%d,"maxUs":%d,"failures":%d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), latency:percentile(99.9),
    latency.max, errors.connect + errors.read + errors.write + errors.timeout + errors.status))
end
