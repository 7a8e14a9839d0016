// swift-tools-version: 6.3
import PackageDescription

/// The settings of gattherd's own modules, with which these sources are written.
let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InferIsolatedConformances"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("ImmutableWeakCaptures"),
    .enableExperimentalFeature("Lifetimes"),
    .strictMemorySafety(),
]

let package = Package(
    name: "gattherd",
    products: [.library(name: "ProfileKit", targets: ["ProfileKit", "GattherdGATT"])],
    targets: [
        .target(name: "CGattherdProfile", path: "Sources/C/CGattherdProfile"),
        .target(name: "GattherdGATT", path: "Sources/Core/GattherdGATT", swiftSettings: settings),
        .target(
            name: "ProfileKit",
            dependencies: ["CGattherdProfile", "GattherdGATT"],
            path: "Sources/Profiles/ProfileKit",
            swiftSettings: settings
        ),
    ]
)
