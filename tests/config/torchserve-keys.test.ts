import { expect, test } from '@jest/globals'
import { INERT_KEYS, inertEnvName } from '../../frontend/config/removed-keys.ts'
import type { KeySpec } from '../../frontend/config/key-spec.ts'
import { KEYS } from '../../frontend/config/keys.ts'
import { settingsOf } from './support.ts'

/** Defaults that differ from TorchServe's on purpose (docs/torchserve-compatibility.md). */
const OTHER_DEFAULT: Readonly<Record<string, string>> = {
  // A client must not register what is outside the model store.
  allowed_urls: 'http(s)?://.*',
}

type Row = [key: string, fallback?: string, env?: string | null]

/**
 * Every key of TorchServe's config.properties (ConfigManager.java) with its default and its environment
 * variable, if that is not TS_<KEY>; null: none. Six that TorchServe reads from the file only have one here.
 */
const ROWS: Row[] = [
  ['inference_address', 'http://127.0.0.1:8080'],
  ['management_address', 'http://127.0.0.1:8081'],
  ['metrics_address', 'http://127.0.0.1:8082'],
  ['grpc_inference_address', '127.0.0.1'],
  ['grpc_management_address', '127.0.0.1'],
  ['grpc_inference_port', '7070'],
  ['grpc_management_port', '7071'],
  ['grpc_inference_max_connection_age_ms'],
  ['grpc_management_max_connection_age_ms'],
  ['grpc_inference_max_connection_age_grace_ms'],
  ['grpc_management_max_connection_age_grace_ms'],
  ['enable_grpc_ssl', 'false'],
  ['load_models', ''],
  ['model_store'],
  ['workflow_store'],
  ['models', '{}'],
  ['model_snapshot'],
  ['default_workers_per_model', '0'],
  // Unset, so that language models can have another: 120 for all others.
  ['default_response_timeout'],
  ['default_startup_timeout', '120'],
  ['unregister_model_timeout', '120'],
  ['job_queue_size', '100'],
  ['number_of_netty_threads', '0'],
  ['netty_client_threads', '0'],
  ['number_of_gpu'],
  ['max_request_size', '6553500'],
  ['max_response_size', '6553500'],
  ['limit_max_image_pixels', 'true'],
  ['decode_input_request', 'true'],
  ['prefer_direct_buffer', 'false'],
  ['allowed_urls', 'file://.*|http(s)?://.*'],
  ['install_py_dep_per_model', 'false'],
  ['enable_metrics_api', 'true'],
  ['metrics_mode', 'log'],
  ['metrics_config'],
  ['model_metrics_auto_detect', 'false'],
  ['disable_system_metrics', 'false'],
  ['system_metrics_cmd', undefined, null],
  ['metric_time_interval', '60'],
  ['enable_model_api', 'false'],
  ['disable_token_authorization', 'false'],
  ['token_expiration_min', '60', 'TS_TOKEN_EXPIRATION_TIME_MIN'],
  ['ts_open_inference_protocol', 'false', 'TS_OPEN_INFERENCE_PROTOCOL'],
  ['ts_header_key_sequence_id', 'ts_request_sequence_id', 'TS_HEADER_KEY_SEQUENCE_ID'],
  ['ts_header_key_sequence_start', 'ts_request_sequence_start', 'TS_HEADER_KEY_SEQUENCE_START'],
  ['ts_header_key_sequence_end', 'ts_request_sequence_end', 'TS_HEADER_KEY_SEQUENCE_END'],
  ['cors_allowed_origin'],
  ['cors_allowed_methods'],
  ['cors_allowed_headers'],
  ['keystore'],
  ['keystore_pass', 'changeit'],
  ['keystore_type', 'PKCS12'],
  ['private_key_file'],
  ['certificate_file'],
  ['default_service_handler'],
  ['service_envelope'],
  ['blacklist_env_vars'],
  ['initial_worker_port', '9000'],
  ['initial_distribution_port', '29500'],
  ['async_logging', 'false'],
  ['cpu_launcher_enable', 'false'],
  ['cpu_launcher_args'],
  ['ipex_enable', 'false'],
  ['ipex_gpu_enable', 'false'],
  ['model_server_home'],
  ['cpp_log_config'],
  ['debug', 'false'],
  ['vmargs', undefined, null],
  ['plugins_path', undefined, null],
  ['use_native_io', 'true', null],
  ['io_ratio', '50', null],
  ['enable_envvars_config', 'false'],
  ['use_env_allowed_urls', 'false'],
  ['python', 'python'],
]

const SPECS: KeySpec<unknown>[] = Object.values(KEYS)

test.each(ROWS.map(([key, fallback, env]) => ({ key, fallback, env })))(
  '$key works with its default and variable, or is accepted with a reason',
  ({ key, fallback, env }) => {
    const variable = env === undefined ? `TS_${key.toUpperCase()}` : (env ?? undefined)
    const spec = SPECS.find(({ name, from }) => name === key && from === 'file')
    if (spec === undefined) {
      expect(INERT_KEYS.map(({ name }) => name)).toContain(key)
      expect(inertEnvName(key)).toBe(variable)
    } else {
      expect(spec.ours).toBe(false)
      expect(spec.env).toBe(variable)
      // Keys without a default in TorchServe may have one here.
      if (fallback !== undefined)
        expect(spec.fallback?.toLowerCase()).toBe((OTHER_DEFAULT[key] ?? fallback).toLowerCase())
    }
  },
)

test('no other key passes for one of TorchServe', () => {
  const known = new Set(ROWS.map(([key]) => key))
  const claimed = SPECS.filter(({ ours, from }) => !ours && from === 'file').map(({ name }) => name)
  expect([...claimed, ...INERT_KEYS.map(({ name }) => name)].filter((name) => !known.has(name))).toEqual([])
})

test.each(INERT_KEYS.map(({ name }) => name))(
  '%s by its variable warns once, if it can be set so',
  (name) => {
    const variable = inertEnvName(name)
    const env = { [variable ?? `TS_${name.toUpperCase()}`]: '1' }
    const { warnings } = settingsOf({ file: 'enable_envvars_config=true\nmetrics_mode=prometheus', env })
    expect(warnings.filter((line) => line.includes(`${name} has no effect`))).toHaveLength(
      variable === undefined ? 0 : 1,
    )
  },
)
