import type { AddressKind, Change, Language } from "./agent.ts";

interface Sentences {
  readonly whichAddress: string;
  /** Says that the address is of the other kind. */
  wrongKind(wanted: AddressKind): string;
  readonly phone: string;
  /** Says why the customer must log in. */
  verify(address: string): string;
  done(customer: string, change: Change): string;
}

/** The texts of the desk. */
export const sentences: Readonly<Record<Language, Sentences>> = {
  en: {
    whichAddress: "What is the new address?",
    wrongKind: (wanted) =>
      wanted === "email"
        ? "Sorry, I need an email address to update the profile, and you gave a postal one."
        : "Sorry, I need a postal address to update the profile, and you gave an email one.",
    phone: "I would be happy to update the address. The account has no phone number, and I need one for that.",
    verify: (address) => `Yes, I can update the address. First you have to verify that it is you: ${address}`,
    done: (customer, { address }) => `The address of ${customer} is ${address}.`,
  },
  zh: {
    whichAddress: "新地址是什么?",
    wrongKind: (wanted) =>
      wanted === "email"
        ? "抱歉,我需要电子邮件地址来更新用户资料,但您提供的是邮寄地址。"
        : "抱歉,我需要邮寄地址来更新用户资料,但您提供的是电子邮件地址。",
    phone: "我很乐意更新地址。看起来该帐户没有电话号码。我需要那个号码才能完成地址更新。",
    verify: (address) => `是的,我可以更新地址。但首先必须按照链接的步骤验证地址:${address}`,
    done: (customer, { address }) => `${customer} 的地址是 ${address}。`,
  },
};
