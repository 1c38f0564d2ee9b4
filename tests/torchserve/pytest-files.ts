/** TorchServe's pytest files that are run. */
export const PYTEST_FILES: readonly string[] = [
  'test_gRPC_inference_api',
  'test_gRPC_management_apis',
  'test_gRPC_allowed_urls',
  'test_gRPC_model_control',
  'test_gRPC_token_authorization',
  'test_send_intermediate_prediction_response',
  'test_continuous_batching',
  'test_example_stateful_sequence_batching_http',
  'test_example_stateful_sequence_continuous_batching_http',
  'test_token_authorization',
  'test_model_control_mode',
  'test_url_path',
  'test_snapshot',
  'test_metrics',
  'test_metrics_kf',
  'test_async_worker_comm',
  'test_mnist_template',
  'test_model_config',
]

/** Those that are about Python models only. */
export const PYTHON_PYTEST_FILES: readonly string[] = [
  'test_model_custom_dependencies',
  'test_handler_traceback_logging',
  'test_pytorch_profiler',
]
