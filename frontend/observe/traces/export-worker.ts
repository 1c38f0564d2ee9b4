/** The thread that exports spans: takes ToExporter, answers with FromExporter. See span-export.ts. */
import { diag } from '@opentelemetry/api'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { ExportedSpan } from './exported-span.ts'
import { reportTo } from './reports.ts'
import type { ExporterSettings, FromExporter, ToExporter } from './span-export.ts'
import { spanProcessors } from './span-processors.ts'
import { readSpans } from './span-rows.ts'

/** Of 19: where processors are short, it gets about a third of what the thread that serves gets. */
const NICE = 5

// Requests come first. On other systems this would hold for the whole process.
if (process.platform === 'linux') setPriority(NICE)

const { attributes, scope, exporters } = workerData as ExporterSettings
const answer = (message: FromExporter): void => parentPort!.postMessage(message)
reportTo((warning) => answer({ warning }))
const processors = spanProcessors(exporters, process.env)
const origin = { resource: resourceFromAttributes(attributes), scope }

async function shutdown(): Promise<void> {
  await Promise.all(processors.map((processor) => processor.shutdown())).catch((error: unknown) =>
    diag.warn(String(error)),
  )
  answer('closed')
}

parentPort!.on('message', (message: ToExporter) => {
  if (message === 'close') {
    void shutdown()
    return
  }
  let taken = 0
  for (const span of readSpans(message)) {
    const readable = new ExportedSpan(span, origin)
    for (const processor of processors) processor.onEnd(readable)
    taken += 1
  }
  answer({ taken })
})
