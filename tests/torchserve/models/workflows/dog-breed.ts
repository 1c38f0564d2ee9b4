import type { HandlerRequest } from 'torchserve-ts'

/** First node of TorchServe's dog breed workflow: the picture in base64. */
export function pre_processing(requests: HandlerRequest[]): string[] {
  return requests.map((request) =>
    Buffer.from((request['data'] ?? request['body']) as Uint8Array).toString('base64'),
  )
}
