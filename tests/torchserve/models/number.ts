import type { HandlerRequest } from 'torchserve-ts'

/** Answers with the number that it is sent, as the handler in test_model_config.py does. */
export function handle(requests: HandlerRequest[]): number[] {
  return requests.map((request) => Number(String(request['body'])))
}
