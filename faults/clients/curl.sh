# Sends plants one after another in one run of curl, and prints the status of each response.
# Arguments: url, token, first id, count, mode (plain, chunked or expect).
url=$1 token=$2 first_id=$3 count=$4 mode=$5
case $mode in
  chunked) header='header = "Transfer-Encoding: chunked"' ;;
  expect) header='header = "Expect: 100-continue"' ;;
  *) header='' ;;
esac
for id in $(seq "$first_id" $((first_id + count - 1))); do
  printf '%s\n' "next
url = \"$url\"
header = \"Authorization: Bearer $token\"
header = \"Content-Type: application/json\"
$header
data = \"{\\\"id\\\":$id,\\\"name\\\":\\\"Monstera\\\"}\"
output = /dev/null
write-out = \"%{http_code}\\n\""
done | curl --silent --show-error --config -
