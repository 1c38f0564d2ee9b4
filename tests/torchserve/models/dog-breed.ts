import type { Context, HandlerRequest, HandlerResponse } from 'torchserve-ts'
import RecordedNetwork from './recorded.ts'

/** Stand-in for the dog breed network: asked only for pictures that the previous node classified as a dog. */
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
