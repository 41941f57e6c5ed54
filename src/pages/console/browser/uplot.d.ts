// The types of uplot.js, which the service makes from a file of the package uplot.
export { default } from 'uplot';
