import GattherdConfig
import Testing

/// Changes of single keys in the text of a file.
@Suite struct DeviceTextEditTests {
    private func edited(_ text: String, _ changes: [DeviceTextEdit.Change]) -> String? {
        DeviceTextEdit.apply(changes, to: "strap", in: Array(text.utf8)).map { String(decoding: $0, as: UTF8.self) }
    }

    private static let title: [DeviceTextEdit.Change] = [("title", "Anna's"), ("area", nil)]

    @Test(arguments: [
        (
            "devices:\n  - name: strap # Polar\n    address: X\n",
            "devices:\n  - name: strap # Polar\n    title: 'Anna''s'\n    address: X\n"
        ),
        ("devices: [{name: strap, address: X}]", "devices: [{name: strap, title: 'Anna''s', address: X}]"),
        ("devices:\n- address: X\n  name: strap", "devices:\n- address: X\n  name: strap\n  title: 'Anna''s'"),
        (
            "devices:\r\n  - name: strap\r\n    address: X\r\n",
            "devices:\r\n  - name: strap\r\n    title: 'Anna''s'\r\n    address: X\r\n"
        ),
        (
            "devices:\n  - title: \"old\" # why\n    name: strap\n    area: Gym\n",
            "devices:\n  - title: 'Anna''s' # why\n    name: strap\n"
        ),
        ("devices: [{name: strap, area: Gym, title: ü}]", "devices: [{name: strap, title: 'Anna''s'}]"),
        ("devices: [{name: strap, area: Gym, address: X}]", "devices: [{name: strap, title: 'Anna''s', address: X}]"),
        ("# ä\ndevices: [{area: Gym, name: strap}]", "# ä\ndevices: [{name: strap, title: 'Anna''s'}]"),
    ])
    func `keys are set and removed, and everything else stays`(before: String, after: String) {
        #expect(edited(before, Self.title) == after)
    }

    @Test func `an edit of one device leaves the others unchanged`() {
        let before = "devices:\n  - {name: dial, title: D}\n  - {name: strap, title: S}\n"
        let after = "devices:\n  - {name: dial, title: D}\n  - {name: strap, title: 'T'}\n"
        #expect(edited(before, [("title", "T")]) == after)
    }

    @Test(arguments: ["", "gateway: a\n", "devices: [{name: dial}]", "devices: {name: strap}", "devices: ["])
    func `a file without the device is not changed`(text: String) {
        #expect(edited(text, Self.title) == nil)
    }

    @Test(arguments: ["\u{301}", "\u{FE0F}", "\u{200D}"])
    func `a quoted text is read as it was, also with marks that combine with quotes`(mark: String) throws {
        for text in ["a'\(mark)b", "'\(mark)", "a $\(mark){HOME}", "a ${\(mark)HOME}", "\\\(mark)'\(mark)'"] {
            let device = "{name: strap, address: 'C0:FF:EE:00:00:01', title: \(ConfigText.quoted(text))}"
            let title = try parse("devices: [\(device)]").devices.first?.title
            #expect(title.map { Array($0.unicodeScalars) } == Array(text.unicodeScalars))
        }
    }

    @Test func `a text cannot be a substitution`() {
        #expect(ConfigText.quoted("a ${HOME} 'b'") == "'a $${HOME} ''b'''")
    }
}
