// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

// A wallet that is a contract: it takes what the key of its owner signed (ERC-1271), in a form that no key alone makes: the
// number of the owner, always 0, and then the signature.
contract TestWallet {
    address private immutable owner;

    constructor(address owner_) {
        owner = owner_;
    }

    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4) {
        (uint256 index, bytes memory inner) = abi.decode(signature, (uint256, bytes));
        if (index != 0 || inner.length != 65) return 0xffffffff;
        (bytes32 r, bytes32 s, uint8 v) = (bytes32(0), bytes32(0), uint8(inner[64]));
        assembly {
            r := mload(add(inner, 32))
            s := mload(add(inner, 64))
        }
        address found = ecrecover(hash, v, r, s);
        return found != address(0) && found == owner ? bytes4(0x1626ba7e) : bytes4(0xffffffff);
    }
}

// Puts wallets where their owners know they will be before they are there (CREATE2). Planted by anvil_setCode: no
// constructor, no immutables.
contract TestWalletFactory {
    function addressOf(address owner) public view returns (address) {
        bytes32 code = keccak256(abi.encodePacked(type(TestWallet).creationCode, abi.encode(owner)));
        return address(uint160(uint256(keccak256(abi.encodePacked(bytes1(0xff), address(this), bytes32(0), code)))));
    }

    // A wallet that is there already is no error.
    function deploy(address owner) external returns (address wallet) {
        wallet = addressOf(owner);
        if (wallet.code.length == 0) new TestWallet{salt: bytes32(0)}(owner);
    }
}
