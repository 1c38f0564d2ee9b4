/** The count model with one request at a time, so that others have to queue. */
export { default } from '../../../../model-store/count/handler.ts'
