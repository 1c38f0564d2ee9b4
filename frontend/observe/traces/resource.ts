import type { Attributes } from '@opentelemetry/api'
import { detectResources, envDetector, type Resource, resourceFromAttributes } from '@opentelemetry/resources'
import { hostname } from 'node:os'
import { version } from '../../package-info.ts'

/** Who makes the spans and metrics. */
export const SCOPE = { name: 'torchserve-ts', version }

/** The server that they are about; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES may say more of it. */
export function serverResource(): Resource {
  const own: Attributes = {
    'service.name': 'torchserve-ts',
    'service.version': version,
    'host.name': hostname(),
    'process.pid': process.pid,
    'process.runtime.name': 'nodejs',
    'process.runtime.version': process.versions.node,
  }
  // The command line, which other detectors tell, may have secrets.
  return resourceFromAttributes(own).merge(detectResources({ detectors: [envDetector] }))
}
