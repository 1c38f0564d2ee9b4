import type { HandlerRequest } from 'torchserve-ts'

/** Functions around a network that only pass on what they get, under the names that TorchServe's test workflows give them. */
export function preprocessing(requests: HandlerRequest[]): unknown[] {
  return requests.map((request) => request['data'] ?? request['body'])
}

export const postprocessing = preprocessing
