#!/usr/bin/env bash
# Makes all files in this folder with OpenSSL 3.0, without the keys of the authorities.
set -euo pipefail
cd "$(dirname "$0")"
keys=$(mktemp -d)
new_key() { openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$1" -out "$keys/request" -subj "/CN=$2"; }
sign() { # NAME EXTENSION ARGUMENT...
  printf '%s\n' '[ca]' 'default_ca=d' '[d]' "database=$keys/index" "new_certs_dir=$keys" "serial=$keys/serial" \
    'default_md=sha256' 'policy=p' 'unique_subject=no' '[p]' 'commonName=supplied' '[x]' "$2" > "$keys/config"
  : > "$keys/index" && openssl rand -hex 8 > "$keys/serial"
  openssl ca -batch -notext -config "$keys/config" -extensions x -in "$keys/request" -out "$1.pem" \
    -startdate 20200101000000Z -enddate 21200101000000Z "${@:3}"
}
for name in ca other-ca; do
  new_key "$keys/$name-key.pem" "plant-store test $name"
  sign $name 'basicConstraints=critical,CA:TRUE' -selfsign -keyfile "$keys/$name-key.pem"
done
new_key server-key.pem localhost
sign server 'subjectAltName=DNS:localhost' -cert ca.pem -keyfile "$keys/ca-key.pem"
new_key client-key.pem certified
sign client 'extendedKeyUsage=clientAuth' -cert ca.pem -keyfile "$keys/ca-key.pem"
openssl req -new -key server-key.pem -subj /CN=localhost -out "$keys/request"
sign expired 'subjectAltName=DNS:localhost' -selfsign -keyfile server-key.pem -enddate 20210101000000Z
rm -r "$keys"
