/** How the operator allows what API_DISABLED refuses. */
export const MODEL_API_HINT = 'start the server with --enable-model-api, or set enable_model_api=true'

/** The message of API_DISABLED for uploads; it says itself how the operator allows them. */
export const UPLOADS_OFF = 'Uploads of archives are off: start the server with enable_archive_upload=true'
