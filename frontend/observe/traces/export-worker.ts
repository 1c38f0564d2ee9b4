/** The thread that exports spans: takes ToExporter, answers with FromExporter. See span-export.ts. */
import { diag } from '@opentelemetry/api'
import { resourceFromAttributes } from '@opentelemetry/resources'
import type { ReadableSpan } from '@opentelemetry/sdk-trace'
import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { EncodedBatch } from './encoded-exporter.ts'
import { ExportedSpan } from './exported-span.ts'
import { reportTo } from './reports.ts'
import type { ExporterSettings, FromExporter, SpansToExport, ToExporter } from './span-export.ts'
import { spanProcessors } from './span-processors.ts'
import { readSpans } from './span-rows.ts'

/** Of 19: where processors are short, it gets about a third of what the thread that serves gets. */
const NICE = 5

// Requests come first. On other systems this would hold for the whole process.
if (process.platform === 'linux') setPriority(NICE)

const settings = workerData as ExporterSettings
const answer = (message: FromExporter): void => parentPort!.postMessage(message)
reportTo((warning) => answer({ warning }))
const origin = { resource: resourceFromAttributes(settings.attributes), scope: settings.scope }
const processors = spanProcessors(settings, process.env, origin)

function take({ spans, count }: SpansToExport): void {
  const done = (): void => answer({ done: count })
  const end = (span: ReadableSpan): void => processors.forEach((processor) => processor.onEnd(span))
  if (spans instanceof Uint8Array) {
    end(new EncodedBatch(spans, origin.resource, done).asSpan())
    return
  }
  for (const span of readSpans(spans)) end(new ExportedSpan(span, origin))
  done()
}

async function shutdown(): Promise<void> {
  await Promise.all(processors.map((processor) => processor.shutdown())).catch((error: unknown) =>
    diag.warn(String(error)),
  )
  answer('closed')
}

parentPort!.on('message', (message: ToExporter) => {
  if (message === 'close') void shutdown()
  else take(message)
})
