import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Takes spans over OTLP and drops them. */
export interface Collector {
  /** Makes a server send its spans here. */
  env: Record<string, string>
  stop(): void
}

/** @param share of the requests that are recorded, from 0 to 1 */
export async function startCollector(share: number): Promise<Collector> {
  const server = createServer((request, response) => {
    request.resume().once('end', () => response.end())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    env: {
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `http://127.0.0.1:${port}/v1/traces`,
      OTEL_METRICS_EXPORTER: 'none',
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: `${share}`,
    },
    stop: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}
