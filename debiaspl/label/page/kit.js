"use strict";
// Elements are made by hand and text is always text: no name of a class or a file is ever read as HTML.

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

const by = (id) => document.getElementById(id);
const count = (value) => value.toLocaleString("en");
const things = (value, noun) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;

class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// Answers of the server: JSON, or a refusal with its reason. No answer at all is an error of the browser's own.
async function ask(path, body) {
  const options = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetch(path, { cache: "no-store", ...options });
  const value = await answer.json();
  if (!answer.ok) throw new Refused(answer.status, value.error);
  return value;
}

// Pictures are fetched before they are looked at, and forgotten when they are no longer near.
const pictures = new Map();

function picture(number) {
  if (!pictures.has(number)) pictures.set(number, fetchPicture(number));
  return pictures.get(number);
}

async function fetchPicture(number) {
  const answer = await fetch(`image/${number}`, { cache: "no-store" });
  if (!answer.ok) return { reason: (await answer.json()).error };
  return { url: URL.createObjectURL(await answer.blob()) };
}

function keepPictures(numbers) {
  numbers.forEach((number) => picture(number).catch(() => pictures.delete(number)));
  for (const number of [...pictures.keys()].filter((one) => !numbers.includes(one)).slice(0, -12)) {
    picture(number).then((old) => old.url && URL.revokeObjectURL(old.url), () => {});
    pictures.delete(number);
  }
}
