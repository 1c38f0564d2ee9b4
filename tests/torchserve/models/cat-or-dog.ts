import type { HandlerRequest } from 'torchserve-ts'
import RecordedNetwork from './recorded.ts'

/** Stand-in for the network that tells cats from dogs; its picture comes in base64. */
export default class CatOrDog extends RecordedNetwork {
  override preprocess(requests: HandlerRequest[]): Buffer[] {
    return requests.map((request) => Buffer.from(String(request['data'] ?? request['body']), 'base64'))
  }
}
