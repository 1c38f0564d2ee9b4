import type { Context, HandlerRequest } from 'torchserve-ts'

/** Answers with the rest of the path behind the version, as the handler in test_url_path.py does. */
export function handle(requests: HandlerRequest[], context: Context): string[] {
  return requests.map((_, index) => context.requestHeader(index, 'url_path') ?? '')
}
