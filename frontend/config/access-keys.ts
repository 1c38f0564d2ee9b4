import { key, type Details } from './key-spec.ts'
import { BOOLEAN } from './value-types.ts'

const OURS: Details = { ours: true }

/** Keys for who may connect, and from where. */
export const ACCESS_KEYS = {
  allowInsecureExposure: key(
    'allow_insecure_exposure',
    BOOLEAN,
    'false',
    'Whether the server starts with tokens off, or with the model API on, on addresses that other machines can reach (docs/security.md). The variable always has an effect.',
    { ...OURS, envAlways: true },
  ),
}
