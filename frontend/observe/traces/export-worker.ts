/** The thread that exports spans: takes ToExporter, answers with FromExporter. See span-export.ts. */
import { diag } from '@opentelemetry/api'
import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { encodedBatches } from './batch-settings.ts'
import { type EncodedBatch, EncodedExports } from './encoded-exporter.ts'
import { ExportedSpan } from './exported-span.ts'
import { reportTo } from './reports.ts'
import { SCOPE, serverResource } from './resource.ts'
import type { ExporterSettings, FromExporter, SpansToExport, ToExporter } from './span-export.ts'
import { spanProcessors } from './span-processors.ts'
import { readSpans } from './span-rows.ts'
import { unknownProtocol } from './trace-exporters.ts'

/** Of 19: where processors are short, it gets about a third of what the thread that serves gets. */
const NICE = 5

// Requests come first. On other systems this would hold for the whole process.
if (process.platform === 'linux') setPriority(NICE)

const settings = workerData as ExporterSettings
const answer = (message: FromExporter): void => parentPort!.postMessage(message)
reportTo((warning) => answer({ warning }))
const origin = { resource: serverResource(), scope: SCOPE }
const done = ({ spans, count }: EncodedBatch): void => {
  const shared = spans.buffer instanceof SharedArrayBuffer ? spans : undefined
  answer({ done: count, shared })
}
const { exporters, encoded } = settings
const unknown = exporters.includes('otlp') ? unknownProtocol(process.env) : undefined
if (unknown !== undefined) diag.warn(`Unsupported OTLP traces protocol: ${unknown}. Using http/protobuf.`)
const batches = encoded ? new EncodedExports(origin, encodedBatches(process.env).timeoutMs, done) : undefined
const processors = encoded ? [] : spanProcessors(exporters, process.env)

function take({ spans, count }: SpansToExport): void {
  if (spans instanceof Uint8Array) {
    batches!.add({ spans, count })
    return
  }
  for (const each of readSpans(spans)) {
    const span = new ExportedSpan(each, origin)
    for (const processor of processors) processor.onEnd(span)
  }
  answer({ done: count })
}

async function close(): Promise<void> {
  const ends = processors.map((processor) => processor.shutdown())
  if (batches !== undefined) ends.push(batches.close())
  await Promise.all(ends).catch((error: unknown) => diag.warn('the last spans are lost', error))
  answer('closed')
}

parentPort!.on('message', (message: ToExporter) => {
  if (message === 'close') void close()
  else take(message)
})
