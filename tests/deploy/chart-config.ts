import { KEYS } from '../../frontend/config/keys.ts'
import type { KeySpec } from '../../frontend/config/key-spec.ts'

/**
 * Keys that the value `config` of the chart does not take: the chart sets them, or pods of one release would
 * differ (enable_model_api), or they belong to TLS in the pod, which its probes cannot speak.
 */
const LEFT_OUT: ReadonlySet<string> = new Set([
  'inference_address',
  'management_address',
  'metrics_address',
  'enable_metrics_api',
  'grpc_inference_address',
  'grpc_inference_port',
  'grpc_management_address',
  'grpc_management_port',
  'open_inference_grpc_address',
  'open_inference_grpc_port',
  'triton_grpc_port',
  'model_store',
  'load_models',
  'model_snapshot',
  'enable_model_api',
  'disable_token_authorization',
  'token_expiration_min',
  'allow_insecure_exposure',
  'api_keys_file',
  'metrics_require_token',
  'enable_grpc_ssl',
  'certificate_file',
  'private_key_file',
  'tls_ciphers',
  'tls_client_ca',
  'tls_client_auth',
  'keystore',
  'keystore_pass',
  'keystore_type',
])

const ONE_LINE = '^(\\S[^\\r\\n]*)?$'
const NUMBERS: ReadonlySet<string> = new Set(['seconds', 'minutes', 'requests'])

/** The schema of the value `config`, by the names of the keys. */
export function configProperties(): Record<string, object> {
  const specs: KeySpec<unknown>[] = Object.values(KEYS)
  const taken = specs.filter(({ name, from }) => from === 'file' && !LEFT_OUT.has(name))
  return Object.fromEntries(taken.map((spec) => [spec.name, { description: spec.doc, ...typeOf(spec) }]))
}

function typeOf({ type: { label } }: KeySpec<unknown>): object {
  const text = { type: 'string', pattern: ONE_LINE }
  if (label === 'boolean') return { type: 'boolean' }
  if (label === 'integer') return { type: 'integer' }
  if (label === 'oip | boolean') return { enum: [true, false, 'oip'] }
  if (label === 'JSON') return { anyOf: [{ type: 'object' }, text] }
  if (label.includes(' | ')) return { enum: label.split(' | ') }
  return NUMBERS.has(label) ? { type: 'number' } : text
}
