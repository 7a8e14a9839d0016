import GattherdProfiles
import Testing

/// The errors of a mapping with one mistake: keys that are right are not among them.
struct FollowUpErrorTests {
    @Test(
        arguments: [
            ("{metric: rr, type: u16el, repeat: rest, omit: 0}", "9:28: 'u16el' is invalid; expected a type"),
            ("{metric: x, type: u8, scale: many, range: [0, 100], kind: state}", "9:38: 'many' is invalid"),
            ("{metric: x, type: u8, kind: conter, wraps: 8}", "9:37: 'conter' is invalid; expected one of gauge"),
            ("{metric: x, formula: 1.5 *, decimals: 1}", "9:35: '1.5 *': expected a name, a number or '('"),
            ("{metric: x, flags: x, type: u8, unit: m}", "9:9: a field has exactly one of 'metric', 'flags'"),
            ("{flags: F, type: u8, share: true}", "9:17: 'F' is invalid; expected a name"),
            ("{decrypt: {cipher: aes-cmm, nonce: \"00\", tag: -4..}}", "9:28: 'aes-cmm' is invalid; expected one of"),
            ("{metric: x, type: u8, table: {1: 2}, range: [1, 5], reset: 10s}", "9:31: a table has 2 to 64"),
            ("{metric: x, type: u8, repeat: rest, omit: 0, reset: 10s}", "9:54: a list cannot be reset"),
            ("{metric: x, type: u8, repeat: rest, enum: {1: a}, reset: 10s}", "9:59: a list cannot be reset"),
            ("{metric: x, type: bool, enum: {0: a}, reset: 10s}", "9:33: 'enum' is for integers"),
            ("{metric: x, type: u8, enum: {0: [a], 1: b}, reset: 10s}", "9:41: this is a list; expected a text"),
            ("{objects: {id: u8}, kinds: {1: {metric: x, type: u9}}}", "9:58: 'u9' is invalid; expected a type"),
        ]
    )
    func `a mistake in a field is one error`(field: String, error: String) throws {
        let errors = try DeclarativeText.errors(DeclarativeText.profile(fields: [field]))
        #expect(errors.count == 1 && errors[0].hasPrefix(error), "\(errors)")
    }

    @Test(
        arguments: [
            ("    check: {kind: crc17, poly: 0x07, init: 1}", "10:19: 'crc17' is invalid; expected one of"),
            (
                "identify:\n  - {brand: [x], model: y, name: z, active_scan: true}",
                "11:13: this is a list; expected a text"
            ),
            (
                "on_connect:\n  - {uuid: 2ad, write: \"00\", answer: {ok: \"00\"}}",
                "11:12: '2ad' is invalid; expected a UUID"
            ),
            (
                "controls:\n  - {name: c, uuid: 2a3, type: u8, answer: {ok: \"00\"}}",
                "11:21: '2a3' is invalid; expected a UUID"
            ),
            (
                "controls:\n  - {name: c, uuid: 2a39, type: u9, range: [0, 5], scale: 0.1}",
                "11:33: 'u9' is invalid; expected a type"
            ),
        ]
    )
    func `a mistake in another mapping is one error`(more: String, error: String) throws {
        let text = DeclarativeText.profile(fields: ["{metric: x, type: u8}"], more: more)
        let errors = try DeclarativeText.errors(text)
        #expect(errors.count == 1 && errors[0].hasPrefix(error), "\(errors)")
    }

    @Test func `a mistake in an advertisement is one error`() throws {
        let text = """
            contract: 1
            profile: thing
            advertisement:
              - service_data: 181a
                stream: Thing
                begins: "01"
                silence: 1h
                fields: [{metric: x, type: u8}]
            """
        let errors = try DeclarativeText.errors(text)
        #expect(errors.count == 1 && errors[0].hasPrefix("5:13: 'Thing' is invalid; expected a name"), "\(errors)")
    }

    @Test(
        arguments: [
            (
                "{metric: x, type: u8, over: x, numbered: true, range: [5, 1]}",
                [
                    "9:31: 'over' has no meaning here, although a field may have it",
                    "9:40: 'numbered' has no meaning here, although a field may have it",
                    "9:63: the lower bound comes first",
                ]
            ),
            (
                "{repeat: rest, scale: 0.1, fields: [{metric: x, type: u8}, {metric: [y], type: u8}]}",
                [
                    "9:24: 'scale' has no meaning here, although a field may have it",
                    "9:77: this is a list; expected a name of a-z, 0-9 and '_', at most 64",
                ]
            ),
        ] as [(String, [String])]
    )
    func `a key without meaning is reported beside a mistake that does not end the reading`(
        field: String,
        errors: [String]
    ) throws {
        #expect(try DeclarativeText.errors(DeclarativeText.profile(fields: [field])) == errors)
    }

    @Test func `an unknown key is reported beside another mistake`() throws {
        let fields = ["{metric: x, type: u9, repeat: 2, unti: m}"]
        let errors = try DeclarativeText.errors(DeclarativeText.profile(fields: fields))
        #expect(errors.count == 2)
        #expect(errors.first?.hasPrefix("9:27: 'u9' is invalid") == true, "\(errors)")
        #expect(errors.last == "9:42: a field has no key 'unti'; did you mean 'unit'?")
    }
}
