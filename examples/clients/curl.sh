#!/bin/sh
# Requests to a running server with the bundled models. The inference key stands in the server's key_file.json;
# a server started with --disable-token-auth asks for none.
set -eu
url=${URL:-http://127.0.0.1:8080}
auth="Authorization: Bearer ${TOKEN:-none}"

# A completion, token by token.
curl -sSN -H "$auth" -H 'content-type: application/json' "$url/predictions/tiny-llama" \
  -d '{"prompt": "In the beginning", "max_tokens": 60, "temperature": 0.7, "top_p": 0.9}'
echo

# Ten numbers, one every 200 ms; cut it with Ctrl-C ...
curl -sSN -H "$auth" "$url/predictions/count" -d n=10 -d delay=200 -d id=mine

# ... and ask how many were made.
curl -sS -H "$auth" "$url/predictions/count" -d query=produced -d id=mine
echo

# What goes in comes out.
curl -sS -H "$auth" -H 'content-type: text/plain' "$url/predictions/echo" -d 'hello'
echo
