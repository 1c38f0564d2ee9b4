/**
 * Stands for grpcurl, where that is not installed: `grpcurl.ts [-plaintext] [-H HEADER] -d JSON|@ ADDRESS
 * METHOD` sends one message, and writes each answer as JSON. As grpcurl does, it refuses fields that the
 * message does not have.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { Client, credentials, Metadata, type ServiceDefinition } from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'

const PROTO_DIR = join(import.meta.dirname, '..', '..', 'proto')
const FILES = ['inference.proto', 'inference/mlserver.proto']

/** What protobuf's JSON writes as text: bytes as base64, integers of 64 bits. */
const JSON_FORM = { includeDirs: [PROTO_DIR], bytes: String, longs: String, defaults: false, oneofs: false }

// grpcurl's flags have one dash.
const args = process.argv.slice(2).map((each) => each.replace(/^-(?=plaintext$)/, '--'))
const { values, positionals } = parseArgs({
  args,
  allowPositionals: true,
  options: {
    plaintext: { type: 'boolean' },
    header: { type: 'string', short: 'H' },
    data: { type: 'string', short: 'd' },
  },
})
const [address, path] = positionals as [string, string]
const [service, name] = path.split('/') as [string, string]
const json = values.data === '@' ? readFileSync(0, 'utf8') : values.data!
const message = JSON.parse(json) as object

const method = methodOf(service, name)
const sent = method.requestDeserialize(method.requestSerialize(message))
const lost = lostFields(message, sent)
if (lost.length > 0) throw new Error(`The message has no such fields: ${lost.join(', ')}`)

const metadata = new Metadata()
const [, key, value] = /^([^:]+): *(.*)$/.exec(values.header ?? '') ?? []
if (key !== undefined) metadata.set(key, value!)
// Of @grpc/grpc-js: GRPC_DEFAULT_SSL_ROOTS_FILE_PATH names the certificates that are trusted.
const channel = values.plaintext === true ? credentials.createInsecure() : credentials.createSsl()
const client = new Client(address, channel)
for await (const answer of answers()) console.log(JSON.stringify(answer))
client.close()

function answers(): AsyncIterable<unknown> {
  const { path: route, requestSerialize: write, responseDeserialize: read } = method
  if (!method.requestStream) return client.makeServerStreamRequest(route, write, read, message, metadata)
  const stream = client.makeBidiStreamRequest<object, unknown>(route, write, read, metadata)
  stream.write(message)
  stream.end()
  return stream
}

function methodOf(service: string, name: string) {
  for (const file of FILES) {
    const found = loadSync(join(PROTO_DIR, file), JSON_FORM)[service] as ServiceDefinition | undefined
    if (found?.[name] !== undefined) return found[name]
  }
  throw new Error(`No .proto file has ${service}/${name}`)
}

/** Fields of a message that are not in what was made from it. */
function lostFields(given: unknown, kept: unknown, path = ''): string[] {
  if (typeof given !== 'object' || given === null) return []
  if (typeof kept !== 'object' || kept === null) return [path]
  return Object.entries(given).flatMap(([key, value]) =>
    Object.hasOwn(kept, key)
      ? lostFields(value, Reflect.get(kept, key), `${path}.${key}`)
      : [`${path}.${key}`],
  )
}
