import { key, type Details } from './key-spec.ts'
import { BOOLEAN, HOST_LIST } from './value-types.ts'

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
  allowedHosts: key(
    'allowed_hosts',
    HOST_LIST,
    '',
    'Names by which clients may call a server without tokens, beside IP addresses and local names; `*.example.com`: all below it, `*`: any (docs/security.md).',
    OURS,
  ),
  checkInferenceOrigin: key(
    'check_inference_origin',
    BOOLEAN,
    'true',
    'Whether the inference and metrics APIs refuse requests from web pages of other sites, as management always does.',
    OURS,
  ),
}
