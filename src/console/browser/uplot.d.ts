// The service serves uplot/dist/uPlot.esm.js as uplot.js.
export { default } from 'uplot';
