export { removeOwnTemp as default } from './own-temp.ts'
