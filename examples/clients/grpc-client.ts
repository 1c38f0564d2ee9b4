/**
 * Streams an answer over gRPC and prints it as it arrives:
 *
 *     npx tsx examples/clients/grpc-client.ts tiny-llama '{"prompt": "In the beginning", "max_tokens": 60}'
 *
 * ADDRESS is the server's address (default 127.0.0.1:7070), TOKEN the inference key of its key_file.json.
 */
import { credentials, loadPackageDefinition, Metadata, type ClientReadableStream } from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import { fileURLToPath } from 'node:url'

interface InferenceService {
  StreamPredictions(
    request: { modelName: string; input: Record<string, Buffer> },
    metadata: Metadata,
    options: { deadline: Date },
  ): ClientReadableStream<{ prediction: Buffer }>
  close(): void
}

const [modelName = 'tiny-llama', input = '{"prompt": "In the beginning"}'] = process.argv.slice(2)
const protoDir = fileURLToPath(new URL('../../proto', import.meta.url))
const definition = loadSync('inference.proto', { includeDirs: [protoDir], defaults: true })
const { org } = loadPackageDefinition(definition) as unknown as {
  org: {
    pytorch: { serve: { grpc: { inference: Record<string, new (...args: unknown[]) => InferenceService> } } }
  }
}
const Service = org.pytorch.serve.grpc.inference['InferenceAPIsService']!
const client = new Service(process.env['ADDRESS'] ?? '127.0.0.1:7070', credentials.createInsecure())

const metadata = new Metadata()
if (process.env['TOKEN'] !== undefined) metadata.set('authorization', `Bearer ${process.env['TOKEN']}`)
const call = client.StreamPredictions({ modelName, input: { data: Buffer.from(input) } }, metadata, {
  deadline: new Date(Date.now() + 60_000),
})
try {
  for await (const { prediction } of call as AsyncIterable<{ prediction: Buffer }>) {
    process.stdout.write(prediction)
  }
} finally {
  client.close()
}
