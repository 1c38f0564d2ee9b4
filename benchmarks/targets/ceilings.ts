import { fileURLToPath } from 'node:url'
import { Service } from '../processes.ts'
import { programPath } from '../programs.ts'
import { scratch } from '../scratch.ts'
import type { Target } from './target.ts'

export const PROTO = fileURLToPath(new URL('../../proto/inference.proto', import.meta.url))
const LISTENING = /^listening (\d+)$/
let workers = 0

/** Ceiling (a): node:http, one process. @param nodeArgs options of Node.js */
export async function startBareHttp(nodeArgs: readonly string[] = []): Promise<Target> {
  const [server, match] = await Service.start([...nodeArgs, programPath('bare-http')], LISTENING)
  return target('node:http', 'restOrigin', match, [server])
}

/** Ceiling (b): node:http and a worker. */
export async function startWorkerHttp(): Promise<Target> {
  const [worker, socket] = await startWorker()
  const [server, match] = await Service.start([programPath('worker-http'), socket], LISTENING)
  return target('worker ceiling', 'restOrigin', match, [server, worker])
}

/** Ceiling (c): grpc-js and the same worker. */
export async function startWorkerGrpc(): Promise<Target> {
  const [worker, socket] = await startWorker()
  const [server, match] = await Service.start([programPath('worker-grpc'), socket, PROTO], LISTENING)
  return target('grpc-js ceiling', 'grpcOrigin', match, [server, worker])
}

async function startWorker(): Promise<[Service, string]> {
  const socket = scratch(`worker-${workers++}.sock`)
  const [worker] = await Service.start([programPath('worker'), socket], LISTENING)
  return [worker, socket]
}

function target(
  name: string,
  origin: 'restOrigin' | 'grpcOrigin',
  match: RegExpExecArray,
  services: Service[],
): Target {
  return {
    name,
    [origin]: `http://127.0.0.1:${match[1]!}`,
    pids: () => services.map((service) => service.pid),
    stop: async () => {
      for (const service of services) await service.stop()
    },
  }
}
