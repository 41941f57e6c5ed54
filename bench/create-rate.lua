-- Each request is a plant with an id of its own, ascending from FIRST_ID. All ids have 16 digits, so that every request
-- has the same length and is one concatenation: what the load costs is not there for the server to have.
local id = 1000000000000000 + tonumber(os.getenv("FIRST_ID"))
local head, middle, tail

function init()
  middle = ',"name":"Monstera deliciosa '
  tail = '","tag":"houseplant"}'
  local length = #'{"id":' + 16 + #middle + 16 + #tail
  head = "POST /plants HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " .. os.getenv("TOKEN") ..
    "\r\nContent-Type: application/json\r\nContent-Length: " .. length .. '\r\n\r\n{"id":'
end

function request()
  id = id + 1
  local digits = string.format("%d", id)
  return head .. digits .. middle .. digits .. tail
end
