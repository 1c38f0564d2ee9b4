export { makeOwnTemp as default } from './own-temp.ts'
