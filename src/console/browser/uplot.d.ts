// The types of uplot.js, which the service makes from a file of this package.
export { default } from 'uplot';
