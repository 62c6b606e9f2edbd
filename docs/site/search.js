// Worker of the search: that of the theme, which gets questions in words rather than whole.
//
// The theme makes a prefix of every word, so that "how do I add a gate" finds all that begins with "i" or "a", and
// compares words in the form in which they are typed. Here a question loses the words that lunr does not index, and
// every other word is looked up in two ways: by its stem, which counts more, and as a prefix, for words half typed.
const OPERATORS = /["+\-~^:*]/;
const listen = self.addEventListener.bind(self);

const words = (question) => question.split(/[^\p{L}\p{N}_.]+/u).filter((word) => lunr.stopWordFilter(word.toLowerCase()));

const asked = (question) => {
  const found = OPERATORS.test(question) ? [] : words(question);
  return found.length ? found.map((word) => `${word}^4 ${word}`).join(" ") : question;
};

self.addEventListener = (type, listener) => listen(type, ({data}) => {
  listener({data: data.type === 2 ? {...data, data: asked(data.data)} : data});
});
importScripts(`assets/javascripts/workers/${location.search.slice(1)}`);
