import GattherdBluetooth
import Testing

/// The answers of each method, as one table.
@Suite
struct PairingMethodTests {
    @Test(arguments: PairingRequest.allCases) func `a passkey is the only proof where there is one`(
        question: PairingRequest
    ) {
        let answer = PairingMethod.passkey(Stage.passkey).answer(to: question)
        let isProof = question == .passkey || question == .pinCode
        #expect((answer == .passkey(Stage.passkey)) == isProof)
        #expect(answer != .accepted)
    }

    @Test(arguments: [PairingMethod.justWorks, .compare], PairingRequest.allCases)
    func `a method without proof accepts requests without proof`(method: PairingMethod, question: PairingRequest) {
        let isAccepted = method.answer(to: question) == .accepted
        #expect(isAccepted == (question == .authorization || question == .confirmation))
    }

    @Test(arguments: ["000042", "123456", "999999"]) func `six digits are a passkey`(digits: String) {
        #expect(Passkey(digits)?.digits == digits)
    }

    @Test(arguments: ["", "12345", "1234567", "12345a", "+12345", "١٢٣٤٥٦", " 12345", "-12345"])
    func `texts other than six digits are refused as a passkey`(text: String) {
        #expect(Passkey(text) == nil)
    }

    @Test func `the description of a passkey hides it`() {
        let answer = PairingResponse.passkey(Stage.passkey)
        for text in ["\(answer)", "\(Stage.passkey)", String(reflecting: answer), String(describing: [answer])] {
            #expect(!text.contains("42"))
        }
        var dumped = ""
        dump(PairingMethod.passkey(Stage.passkey), to: &dumped)
        #expect(!dumped.contains("42"))
    }
}
