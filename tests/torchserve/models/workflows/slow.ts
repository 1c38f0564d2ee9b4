import { setTimeout as wait } from 'node:timers/promises'
import type { HandlerRequest } from 'torchserve-ts'

/** Takes longer than its node may. */
export async function preprocessing(requests: HandlerRequest[]): Promise<unknown[]> {
  await wait(5000)
  return requests.map((request) => request['body'])
}
