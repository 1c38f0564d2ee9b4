import { callAndRead, postAndRead } from '../wire.ts'
import { processTree, Service, type StartOptions } from '../processes.ts'
import { scratch } from '../scratch.ts'
import type { Target } from '../targets/target.ts'
import { ECHO_BODY } from '../ceilings/workload.ts'
import { isBatchModel, timedText, type BatchModel, type Model, type Peer } from './peer.ts'

let starts = 0

export interface Addresses {
  restOrigin: string
  grpcOrigin?: string
}

/** Starts a peer's program; resolves when its health path answers 200 and every model has answered. */
export async function startProgram(
  peer: Peer,
  models: readonly (Model | BatchModel)[],
  command: readonly [string, ...string[]],
  addresses: Addresses,
  options: StartOptions,
): Promise<Target> {
  const log = scratch(`${peer.name}-${starts++}.log`)
  const isReady = (): Promise<boolean> => isServing(peer, models, addresses).catch(() => false)
  const service = await Service.startUntil(command, isReady, log, options)
  return {
    name: peer.title,
    ...addresses,
    pids: () => processTree(service.pid),
    stop: () => service.stop(),
  }
}

/** Whether the server itself and all the models answer. */
async function isServing(
  peer: Peer,
  models: readonly (Model | BatchModel)[],
  addresses: Addresses,
): Promise<boolean> {
  const { status } = await fetch(addresses.restOrigin + peer.health)
  if (status !== 200) return false
  for (const model of models) {
    const isUp = isBatchModel(model) ? answersBatch(model, addresses) : answers(peer, model, addresses)
    if (!(await isUp)) return false
  }
  return true
}

async function answersBatch(model: BatchModel, { restOrigin }: Addresses): Promise<boolean> {
  return (await postAndRead(`${restOrigin}/predictions/${model}`, Buffer.from('{}'))).status === 200
}

/** Two items: a stream that ends without one in between breaks TorchServe's gRPC. */
async function answers(peer: Peer, model: Model, { restOrigin, grpcOrigin }: Addresses): Promise<boolean> {
  const text = model === 'echo' ? ECHO_BODY : timedText({ n: 2, gap: 0 })
  const { path, body, headers } = peer.rest(model, text)
  if ((await postAndRead(restOrigin + path, body, headers)).status !== 200) return false
  if (peer.grpc === undefined || grpcOrigin === undefined || model === 'idle') return true
  return (await callAndRead(grpcOrigin, peer.grpc(model, text))).status === 0
}
