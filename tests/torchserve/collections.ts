/** One run of a collection, with the server's configuration of ts_scripts/api_utils.py. */
export interface Collection {
  readonly name: string
  /** In test/postman, without its ending. */
  readonly file: string
  readonly data?: string
  /** Lines of config.properties, or a file below test/. */
  readonly config: readonly string[] | string
  readonly workflows?: true
}

const OPEN = ['disable_token_authorization=true', 'enable_model_api=true']
const PROMETHEUS = ['metrics_mode=prometheus', ...OPEN]

export const COLLECTIONS: readonly Collection[] = [
  { name: 'management', file: 'management_api_test_collection', data: 'management_data', config: OPEN },
  { name: 'inference', file: 'inference_api_test_collection', data: 'inference_data', config: PROMETHEUS },
  {
    name: 'increased_timeout_inference',
    file: 'inference_api_test_collection',
    data: 'increased_timeout_inference',
    config: ['default_response_timeout=300', ...PROMETHEUS],
  },
  { name: 'https', file: 'https_test_collection', config: 'resources/config.properties' },
  {
    name: 'management_kf',
    file: 'management_api_test_collection',
    data: 'management_data',
    config: [...OPEN, 'service_envelope=kserve'],
  },
  {
    name: 'inference_kf',
    file: 'kf_api_test_collection',
    data: 'kf_inference_data',
    config: ['service_envelope=kserve', ...PROMETHEUS],
  },
  {
    name: 'inference_kf_older',
    file: 'kf_inference_api_test_collection',
    data: 'kf_inference_data',
    config: ['service_envelope=kserve', ...PROMETHEUS],
  },
  { name: 'https_kf', file: 'kf_https_test_collection', config: 'resources/config_kf.properties' },
  {
    name: 'inference_kfv2',
    file: 'kfv2_api_test_collection',
    data: 'kfv2_inference_data',
    config: ['service_envelope=kservev2', ...PROMETHEUS],
  },
  { name: 'https_kfv2', file: 'kfv2_https_test_collection', config: 'resources/config_kfv2.properties' },
  {
    name: 'explanation',
    file: 'explanation_api_test_collection',
    data: 'explanation_data',
    config: PROMETHEUS,
  },
  {
    name: 'workflow',
    file: 'workflow_api_test_collection',
    data: 'workflow_data',
    config: ['disable_token_authorization=true'],
    workflows: true,
  },
  {
    name: 'workflow_inference',
    file: 'workflow_inference_collection',
    data: 'workflow_inference_data',
    config: ['disable_token_authorization=true'],
    workflows: true,
  },
]
