import type { HandlerRequest } from 'torchserve-ts'

/** Functions around a network that return their input, under the names of TorchServe's test workflows. */
export function preprocessing(requests: HandlerRequest[]): unknown[] {
  return requests.map((request) => request['data'] ?? request['body'])
}

export const postprocessing = preprocessing
