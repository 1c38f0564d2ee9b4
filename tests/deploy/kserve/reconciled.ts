import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Pod } from './running-pod.ts'

interface Reconciled {
  kserve: string
  deployments: {
    metadata: { name: string }
    spec: { replicas?: number; strategy: { rollingUpdate: { maxUnavailable: string; maxSurge: string } } }
  }[]
  services: { metadata: { name: string }; spec: { ports: { port: number; targetPort: number }[] } }[]
  pods: Pod[]
}

/** What KServe, its reconciler and webhooks, makes of deploy/kserve and of the services here (main.go). */
export const RECONCILED = JSON.parse(
  readFileSync(join(import.meta.dirname, 'reconciled.json'), 'utf8'),
) as Reconciled

/** The pod of an InferenceService's predictor. */
export function podOf(service: string): Pod {
  return RECONCILED.pods.find(({ metadata }) => metadata.name === `${service}-predictor`)!
}
