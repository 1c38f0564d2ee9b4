/**
 * The queries by which the Helm chart and docs/autoscaling.md scale, evaluated by a real Prometheus that
 * reads two servers of a rendered release at rest, under load, and afterwards: `npm run test:autoscaling`.
 * Needs Go, and `prometheus` in PATH. One line per check; ends with `N passed, N failed`.
 */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { ChartProgram, type Rendered, valueSet } from '../../deploy/chart-program.ts'
import { launchServer, type Server, started } from '../../support/server-process.ts'
import { type Checks, runChecks } from '../checks.ts'
import { WINDOW_S } from '../files.ts'
import { makeStory } from '../models.ts'
import { Prometheus } from '../prometheus.ts'
import { checkScaling } from './course.ts'
import { Crowd } from './crowd.ts'
import { type Pod, Release } from './release.ts'
import { documentedQueries, documentedSignals, signalsOf } from './signals.ts'

const PODS = 2

async function main(folder: string, checks: Checks): Promise<void> {
  const [keda, hpa] = await rendered(folder)
  const release = new Release(keda)
  const modelStore = await makeStory(folder)
  const servers: Server[] = []
  let prometheus: Prometheus | undefined
  try {
    for (let k = 0; k < PODS; k += 1)
      servers.push(await startPod(release, join(folder, `pod-${k}`), modelStore))
    const pods = servers.map(podOf)
    prometheus = await Prometheus.start({ folder, scrapes: [release.scrape(pods)] })
    await checkScaling(checks, {
      prometheus,
      pods: PODS,
      chart: [keda, hpa].flatMap((objects) => objects.flatMap((each) => signalsOf(each, 'chart'))),
      documented: documentedSignals(),
      queries: documentedQueries(),
      crowd: new Crowd(servers, release.secret('inference-key')),
    })
  } finally {
    await prometheus?.stop()
    for (const server of servers) await server.stop('SIGKILL')
  }
}

/** The releases with a ScaledObject and with a HorizontalPodAutoscaler; the crowd passes their targets. */
async function rendered(folder: string): Promise<[Objects, Objects]> {
  const [keda, hpa] = [valueSet('keda.yaml'), valueSet('hpa.yaml')].map(({ values }) => values as Values)
  const { autoscaling } = keda!
  const sets = [
    {
      ...keda,
      models: { load: ['story'] },
      autoscaling: {
        ...autoscaling,
        keda: { ...autoscaling.keda, openStreamsPerPod: 1, window: `${WINDOW_S}s` },
      },
    },
    {
      ...hpa,
      autoscaling: {
        ...hpa!.autoscaling,
        minReplicas: 1,
        hpa: { podMetrics: [{ name: 'torchserve_ts_open_streams', averageValue: '1' }] },
      },
    },
  ].map((values, k) => ({ name: String(k), values }))
  const program = await ChartProgram.build(folder)
  const cases = await program.render(sets)
  const wrong = cases.find(({ error }) => error !== '')
  if (wrong !== undefined) throw new Error(wrong.error)
  return [contentsOf(cases[0]!), contentsOf(cases[1]!)]
}

interface Values {
  autoscaling: { keda: object }
}
type Objects = Rendered['objects'][number]['content'][]

function contentsOf({ objects }: Rendered): Objects {
  return objects.map(({ content }) => content)
}

/** A server with the release's own config.properties and keys; addresses and folders are the test's. */
async function startPod(release: Release, folder: string, modelStore: string): Promise<Server> {
  await mkdir(folder)
  const config = {
    ...release.config(folder),
    inference_address: 'http://127.0.0.1:0',
    management_address: 'http://127.0.0.1:0',
    metrics_address: 'http://127.0.0.1:0',
    grpc_inference_address: '127.0.0.1',
    grpc_inference_port: 0,
    grpc_management_port: 0,
    open_inference_grpc_address: '127.0.0.1',
    open_inference_grpc_port: 0,
    model_store: modelStore,
  }
  return started(launchServer({ folder, modelStore, config, flags: [] }))
}

function podOf({ ports }: Server, k: number): Pod {
  return {
    name: `story-torchserve-ts-${k}`,
    ports: new Map([
      ['http', ports.inference],
      ['grpc', ports.grpcInference],
      ['grpc-v2', ports.openInference],
      ['metrics', ports.metrics],
    ]),
  }
}

await runChecks('autoscaling', main)
