/** How the operator allows what API_DISABLED refuses. */
export const MODEL_API_HINT = 'start the server with --enable-model-api, or set enable_model_api=true'
