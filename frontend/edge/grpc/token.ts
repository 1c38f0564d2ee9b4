import type { Metadata } from '@grpc/grpc-js'
import type { Authorizer, TokenKind } from '../../auth/authorizer.ts'

/** Checks the call's `authorization` metadata. @throws ServeError UNAUTHORIZED */
export function authorize(
  authorizer: Authorizer,
  kind: TokenKind,
  call: { readonly metadata: Metadata },
): void {
  const [value] = call.metadata.get('authorization')
  authorizer.check(kind, typeof value === 'string' ? value : undefined)
}
