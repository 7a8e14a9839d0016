import Testing

@testable import gattherd

@Suite struct PromptTests {
    @Test(
        arguments: [
            ("", true), ("y", true), ("Yes", true), ("n", false), ("NO", false), ("maybe", nil), ("q", nil), ("1", nil),
        ] as [(String, Bool?)]
    )
    func `only yes, no and the empty answer have a meaning`(answer: String, isYes: Bool?) {
        #expect(Prompt.isYes(answer) == isYes)
    }
}
