import type { Context, HandlerRequest, HandlerResponse } from 'torchserve-ts'
import RecordedNetwork from './recorded.ts'

/** Stand-in for the network that names the breed of a dog: asked only for pictures that the node before took for a dog. */
export default class DogBreed extends RecordedNetwork {
  override handle(requests: HandlerRequest[], context: Context): HandlerResponse[] {
    const breeds = this.inference(this.preprocess(requests), context)
    return requests.map((request, index) =>
      String(request['cat_dog_classification']) === 'dog' ? breeds[index] : "It's a cat!",
    )
  }

  override preprocess(requests: HandlerRequest[]): Buffer[] {
    return requests.map((request) => Buffer.from(String(request['pre_processing']), 'base64'))
  }
}
