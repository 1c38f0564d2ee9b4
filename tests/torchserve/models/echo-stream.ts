import { sendIntermediatePredictResponse, type Context, type HandlerRequest } from 'torchserve-ts'

/** The streaming echo of TorchServe's tests: three times `hello`, and `hello world ` at last. */
export async function handle(requests: HandlerRequest[], context: Context): Promise<string[]> {
  const hello = requests.map(() => 'hello')
  for (let n = 0; n < 3; n++) {
    await sendIntermediatePredictResponse(
      hello,
      context.requestIds,
      'Intermediate Prediction success',
      200,
      context,
    )
  }
  return requests.map(() => 'hello world ')
}
